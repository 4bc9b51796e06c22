variable "bytes" {
  type = number
}

variable "token" {
  type      = string
  sensitive = true
}

resource "terraform_data" "flood" {
  input = var.bytes

  provisioner "local-exec" {
    command = "head -c ${var.bytes} /dev/zero | tr '\\0' x | fold -w 1000"
  }
}

resource "terraform_data" "after" {
  input = terraform_data.flood.output
}

output "token" {
  value     = var.token
  sensitive = true
}
