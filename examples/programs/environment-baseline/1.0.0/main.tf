variable "environment" {
  type = string
}

variable "environment_class" {
  type    = string
  default = "DEVELOPMENT"

  validation {
    condition     = contains(["DEVELOPMENT", "TEST", "STAGING", "PRODUCTION"], var.environment_class)
    error_message = "environment_class must be DEVELOPMENT, TEST, STAGING or PRODUCTION."
  }
}

variable "region" {
  type    = string
  default = "local"
}

locals {
  zones = var.environment_class == "PRODUCTION" ? ["a", "b", "c"] : ["a", "b"]
}

# Everything of the environment lives in its network: another region is another network.
resource "terraform_data" "network" {
  input = {
    name   = "${var.environment}-network"
    region = var.region
  }
  triggers_replace = [var.region]
}

resource "terraform_data" "subnet" {
  for_each = toset(local.zones)

  input = {
    name    = "${var.environment}-${each.key}"
    network = terraform_data.network.id
    zone    = "${var.region}-${each.key}"
  }
}

resource "terraform_data" "registry" {
  input = {
    name      = "${var.environment}-registry"
    immutable = var.environment_class == "PRODUCTION"
  }
}

output "network_id" {
  value = terraform_data.network.id
}

output "subnet_ids" {
  value = { for zone, subnet in terraform_data.subnet : zone => subnet.id }
}

output "components" {
  description = "What an observer looks for in this environment: nothing runs in a bare foundation."
  value       = []
}
