variable "environment" {
  type = string
}

variable "domain" {
  type = string
}

variable "routes" {
  description = "Addresses by the path under which they are offered."
  type        = map(string)
}

resource "terraform_data" "gateway" {
  input = {
    name   = "${var.environment}-gateway"
    domain = var.domain
  }
}

resource "terraform_data" "route" {
  for_each = var.routes

  input = {
    gateway = terraform_data.gateway.id
    path    = each.key
    target  = each.value
  }
}

output "url" {
  value = "https://${var.domain}/"
}

output "routes" {
  value = { for path, route in terraform_data.route : path => route.output.target }
}
