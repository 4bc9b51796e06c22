variable "environment" {
  description = "What the environment is called; every name begins with it."
  type        = string

  validation {
    condition     = length(var.environment) > 0
    error_message = "environment must not be empty."
  }
}

variable "environment_class" {
  description = "DEVELOPMENT, TEST, STAGING or PRODUCTION."
  type        = string
  default     = "DEVELOPMENT"

  validation {
    condition     = contains(["DEVELOPMENT", "TEST", "STAGING", "PRODUCTION"], var.environment_class)
    error_message = "environment_class must be DEVELOPMENT, TEST, STAGING or PRODUCTION."
  }
}

variable "region" {
  description = "Where it is."
  type        = string
  default     = "local"
}

variable "network_cidr" {
  description = "The network's addresses."
  type        = string
  default     = "10.20.0.0/16"

  validation {
    condition     = can(cidrsubnet(var.network_cidr, 4, 0))
    error_message = "network_cidr must be a range of addresses that can be divided by 16, like 10.20.0.0/16."
  }
}

variable "namespaces" {
  description = "Names of the namespaces."
  type        = set(string)
  default     = ["apps", "data", "system"]

  validation {
    condition     = alltrue([for name in var.namespaces : can(regex("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", name))])
    error_message = "namespaces must be names of a-z, 0-9 and hyphens."
  }
}

variable "quotas" {
  description = "Quotas that differ from those of the environment's class, by namespace."
  type = map(object({
    cpu        = optional(number)
    memory_gib = optional(number)
    pods       = optional(number)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.quotas), var.namespaces)) == 0
    error_message = "quotas must name namespaces of this environment only."
  }
}
