module "component" {
  source   = "./modules/component"
  for_each = var.components

  name        = each.key
  environment = var.environment
  version_tag = coalesce(each.value.version, var.release)
  replicas    = each.value.replicas
  port        = each.value.port
  settings    = each.value.settings
}

# Only components with a path are reachable from outside; the others are called by their neighbours.
module "gateway" {
  source = "./modules/gateway"

  environment = var.environment
  domain      = var.domain
  routes = {
    for name, component in module.component : var.components[name].path => component.address
    if var.components[name].path != null
  }
}
