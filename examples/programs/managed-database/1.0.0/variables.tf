variable "environment" {
  description = "The environment that it belongs to."
  type        = string
}

variable "engine_version" {
  description = "The server's major version."
  type        = string
  default     = "17"
}

variable "storage_gib" {
  description = "How large its disk is."
  type        = number
  default     = 20

  validation {
    condition     = var.storage_gib >= 10
    error_message = "storage_gib must be 10 or more."
  }
}

variable "replicas" {
  description = "How many read replicas it has."
  type        = number
  default     = 0
}

variable "backup_days" {
  description = "How long backups are kept; 0 makes none."
  type        = number
  default     = 7
}

variable "databases" {
  description = "Names of the databases."
  type        = set(string)
  default     = ["app"]
}

variable "admin_password" {
  description = "The administrator's password."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.admin_password) >= 12
    error_message = "admin_password must have 12 characters or more."
  }
}

variable "owner_passwords" {
  description = "The password of each database's owner, by the database's name."
  type        = map(string)
  sensitive   = true

  validation {
    condition     = length(setsubtract(var.databases, keys(var.owner_passwords))) == 0
    error_message = "owner_passwords must have a password for each database."
  }
}
