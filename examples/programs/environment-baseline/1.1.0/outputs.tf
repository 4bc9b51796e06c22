output "network_id" {
  description = "What a release attaches itself to."
  value       = terraform_data.network.id
}

output "subnet_ids" {
  description = "By zone."
  value       = { for zone, subnet in terraform_data.subnet : zone => subnet.id }
}

output "namespaces" {
  description = "Full names and quotas, by the names that were asked for."
  value = {
    for name, namespace in terraform_data.namespace : name => {
      name  = namespace.output.name
      quota = terraform_data.quota[name].output.limits
    }
  }
}

output "components" {
  description = "What an observer looks for in this environment: nothing runs in a bare foundation."
  value       = []
}
