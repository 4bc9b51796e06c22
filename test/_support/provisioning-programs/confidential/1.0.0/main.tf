variable "password" {
  type      = string
  sensitive = true
}

variable "credentials" {
  type = object({
    user = string
    keys = list(object({ name = string, value = string }))
  })
  sensitive = true
}

variable "private_key" {
  type      = string
  sensitive = true
}

variable "failure" {
  type    = string
  default = "none"
}

variable "revision" {
  type    = number
  default = 1
}

resource "terraform_data" "sensitive" {
  input = {
    revision    = var.revision
    password    = var.password
    credentials = var.credentials
    private_key = var.private_key
  }
}

# What says that it isn't sensitive, and holds the same values.
resource "terraform_data" "careless" {
  input = {
    revision = var.revision
    text     = "password=${nonsensitive(var.password)};"
    key      = nonsensitive(var.private_key)
    json     = jsonencode(nonsensitive(var.credentials))
  }

  provisioner "local-exec" {
    command = "echo \"logging in with $PASSWORD\"; echo \"$KEY\"; printf %s \"$PASSWORD\" | base64 -w0; echo"
    environment = {
      PASSWORD = nonsensitive(var.password)
      KEY      = nonsensitive(var.private_key)
    }
  }
}

resource "terraform_data" "guarded" {
  input = var.revision

  lifecycle {
    precondition {
      condition     = var.failure != "precondition"
      error_message = "The password ${nonsensitive(var.password)} was refused, and so was ${nonsensitive(var.credentials.keys[0].value)}."
    }
  }
}

resource "terraform_data" "refused" {
  count = var.failure == "provisioner" ? 1 : 0
  input = terraform_data.careless.output

  provisioner "local-exec" {
    command = "echo \"refused: $PASSWORD\" >&2; echo \"$KEY\" >&2; exit 1"
    environment = {
      PASSWORD = nonsensitive(var.password)
      KEY      = nonsensitive(var.private_key)
    }
  }
}

output "connection" {
  value     = "db://admin:${var.password}@${terraform_data.sensitive.id}"
  sensitive = true
}

# Nobody knows it before the apply.
output "generated" {
  value     = sha256(terraform_data.sensitive.id)
  sensitive = true
}

output "careless" {
  value = "admin:${nonsensitive(var.password)}"
}
