output "components" {
  description = "What an observer looks for: which version of what runs how often."
  value       = [for name in sort(keys(module.component)) : module.component[name].component]
}

output "url" {
  description = "Where the shop is."
  value       = module.gateway.url
}

output "routes" {
  description = "Which component answers under which path."
  value       = module.gateway.routes
}
