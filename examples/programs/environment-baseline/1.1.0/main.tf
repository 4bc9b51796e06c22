locals {
  production = var.environment_class == "PRODUCTION"
  zones      = local.production ? ["a", "b", "c"] : ["a", "b"]

  # What a namespace may use unless `quotas` says otherwise.
  default_quota = {
    cpu        = local.production ? 32 : 8
    memory_gib = local.production ? 128 : 32
    pods       = local.production ? 200 : 50
  }
}

# Everything of the environment lives in its network: another region is another network.
resource "terraform_data" "network" {
  input = {
    name   = "${var.environment}-network"
    region = var.region
    cidr   = var.network_cidr
  }
  triggers_replace = [var.region]
}

resource "terraform_data" "subnet" {
  for_each = toset(local.zones)

  input = {
    name    = "${var.environment}-${each.key}"
    network = terraform_data.network.id
    zone    = "${var.region}-${each.key}"
    # By the zone's own letter, so that a third zone leaves the first two as they are.
    cidr = cidrsubnet(var.network_cidr, 4, index(["a", "b", "c"], each.key))
  }
}

resource "terraform_data" "namespace" {
  for_each = var.namespaces

  input = {
    name = "${var.environment}-${each.key}"
    labels = {
      environment = var.environment
      class       = lower(var.environment_class)
    }
  }
}

# Namespaces don't hear each other unless a release says so.
resource "terraform_data" "isolation" {
  for_each = var.namespaces

  input = {
    namespace = terraform_data.namespace[each.key].output.name
    ingress   = "same-namespace"
    egress    = "any"
  }
}

resource "terraform_data" "quota" {
  for_each = var.namespaces

  input = {
    namespace = terraform_data.namespace[each.key].output.name
    # A number that is left out is null, which must not hide the default.
    limits = merge(local.default_quota, {
      for name, limit in try(var.quotas[each.key], {}) : name => limit if limit != null
    })
  }
}

resource "terraform_data" "registry" {
  input = {
    name      = "${var.environment}-registry"
    immutable = local.production
  }
}
