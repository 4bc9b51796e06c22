variable "address" {
  type = string
}

variable "token" {
  type      = string
  sensitive = true
}

data "terraform_remote_state" "gate" {
  backend = "http"
  config = {
    address = var.address
  }
}

resource "terraform_data" "only" {
  input = var.token
}
