variable "environment" {
  description = "The environment that it runs in."
  type        = string
}

variable "release" {
  description = "The version of every component that names none of its own."
  type        = string
}

variable "components" {
  description = "The shop's parts, by name."
  type = map(object({
    version  = optional(string)
    replicas = optional(number, 1)
    port     = optional(number, 8080)
    path     = optional(string)
    settings = optional(map(string), {})
  }))
  default = {
    web       = { replicas = 2, path = "/" }
    catalogue = { replicas = 2, path = "/catalogue" }
    cart      = { path = "/cart" }
    checkout  = {}
  }

  validation {
    condition     = alltrue([for part in var.components : part.replicas >= 0 && floor(part.replicas) == part.replicas])
    error_message = "components: replicas must be a whole number, 0 or more."
  }

  validation {
    # Two of the same path can't both be keys.
    condition     = can({ for name, part in var.components : part.path => name if part.path != null })
    error_message = "components: each path may be offered by one component only."
  }
}

variable "domain" {
  description = "The host name that the gateway answers to."
  type        = string
  default     = "shop.example"
}
