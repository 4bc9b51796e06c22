variable "pool_id" {
  type = string
}

variable "size" {
  type = number

  validation {
    condition     = var.size >= 0 && floor(var.size) == var.size
    error_message = "size must be a whole number, 0 or more."
  }
}

variable "generation" {
  type = number
}

resource "terraform_data" "worker" {
  count = var.size

  input = {
    pool = var.pool_id
    slot = count.index
  }
}

output "pools" {
  value = [{
    poolId     = var.pool_id
    size       = length(terraform_data.worker)
    generation = var.generation
  }]
}
