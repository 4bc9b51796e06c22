variable "address" {
  type = string
}

variable "signals" {
  type = string
}

variable "token" {
  type      = string
  sensitive = true
}

resource "terraform_data" "first" {
  input = var.address

  provisioner "local-exec" {
    command = "(trap '' INT TERM HUP; echo stubborn >> \"$SIGNALS/begun\"; while :; do sleep 0.1; done) > /dev/null 2>&1 &"
    environment = {
      SIGNALS = var.signals
      TOKEN   = var.token
    }
  }
}

# Its address is known once the first resource is there, so it is read while the plan is applied.
data "terraform_remote_state" "gate" {
  backend = "http"
  config = {
    address = terraform_data.first.output
  }
}

resource "terraform_data" "second" {
  input = data.terraform_remote_state.gate.outputs
}
