locals {
  host = "postgres.${var.environment}.internal"
  port = 5432

  address = "${local.host}:${local.port}"
}

# Another major version can't read the files of the old one.
resource "terraform_data" "server" {
  input = {
    name           = "${var.environment}-postgres"
    engine         = "postgres"
    engine_version = var.engine_version
    storage_gib    = var.storage_gib
    administrator = {
      name     = "postgres"
      password = var.admin_password
    }
  }
  triggers_replace = [var.engine_version]

  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "replica" {
  count = var.replicas

  input = {
    name   = "${var.environment}-postgres-replica-${count.index}"
    server = terraform_data.server.id
  }
}

resource "terraform_data" "database" {
  for_each = var.databases

  input = {
    server = terraform_data.server.id
    name   = each.key
    owner = {
      name     = "${each.key}_owner"
      password = var.owner_passwords[each.key]
    }
  }
}

resource "terraform_data" "backups" {
  count = var.backup_days > 0 ? 1 : 0

  input = {
    server    = terraform_data.server.id
    keep_days = var.backup_days
    # At night, and not at the same minute as every other environment's.
    schedule = "${parseint(substr(sha256(var.environment), 0, 4), 16) % 60} 2 * * *"
  }
}
