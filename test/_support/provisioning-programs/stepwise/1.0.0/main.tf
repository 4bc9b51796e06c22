variable "signals" {
  type = string
}

variable "gate" {
  type = string
}

variable "token" {
  type      = string
  sensitive = true
}

variable "revision" {
  type    = number
  default = 1
}

resource "terraform_data" "first" {
  input            = "first"
  triggers_replace = var.revision
}

resource "terraform_data" "second" {
  input            = terraform_data.first.output
  triggers_replace = var.revision

  provisioner "local-exec" {
    command = "echo \"$GATE\" >> \"$SIGNALS/begun\"; while [ ! -e \"$SIGNALS/$GATE\" ]; do sleep 0.05; done"
    environment = {
      SIGNALS = var.signals
      GATE    = var.gate
      TOKEN   = var.token
    }
  }
}

resource "terraform_data" "third" {
  input            = terraform_data.second.output
  triggers_replace = var.revision
}

output "token" {
  value     = var.token
  sensitive = true
}

output "steps" {
  value = 3

  depends_on = [terraform_data.third]
}
