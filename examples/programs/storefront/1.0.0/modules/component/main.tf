variable "name" {
  type = string
}

variable "environment" {
  type = string
}

# `version` is a name that Terraform keeps for itself in a module's call.
variable "version_tag" {
  type = string
}

variable "replicas" {
  type = number
}

variable "port" {
  type = number
}

variable "settings" {
  type = map(string)
}

locals {
  address = "http://${var.name}.${var.environment}.internal:${var.port}"
}

resource "terraform_data" "configuration" {
  input = merge({ PORT = tostring(var.port) }, var.settings)
}

# A release is never changed: another version, or another configuration, is another release.
resource "terraform_data" "release" {
  input = {
    image         = "registry.local/${var.name}:${var.version_tag}"
    configuration = sha256(jsonencode(terraform_data.configuration.output))
  }
  triggers_replace = [var.version_tag, var.settings, var.port]

  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "instance" {
  count = var.replicas

  input = {
    name    = "${var.environment}-${var.name}-${count.index}"
    release = terraform_data.release.id
  }
}

output "address" {
  description = "Where its neighbours find it."
  value       = local.address
}

output "component" {
  description = "What an observer compares with what runs."
  value = {
    name     = var.name
    version  = var.version_tag
    replicas = length(terraform_data.instance)
  }
}
