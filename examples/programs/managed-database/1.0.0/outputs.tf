output "host" {
  description = "Where the server is."
  value       = local.host
}

output "port" {
  value = local.port
}

output "databases" {
  description = "Names of the databases."
  value       = sort(keys(terraform_data.database))
}

output "connection_strings" {
  description = "How each database is reached by its owner, by the database's name."
  value = {
    for db in keys(terraform_data.database) :
    db => "postgresql://${db}_owner:${urlencode(var.owner_passwords[db])}@${local.address}/${db}?sslmode=require"
  }
  sensitive = true
}

output "admin_connection_string" {
  description = "How the administrator reaches the server."
  value       = "postgresql://postgres:${urlencode(var.admin_password)}@${local.address}/postgres?sslmode=require"
  sensitive   = true
}

output "components" {
  description = "What an observer looks for: the server and its replicas."
  value = [{
    name     = terraform_data.server.output.name
    version  = var.engine_version
    replicas = 1 + length(terraform_data.replica)
  }]
}
