variable "name" {
  type    = string
  default = "broken"
}

resource "terraform_data" "network" {
  input = "${var.name}-network"
}

resource "terraform_data" "volume" {
  input = "${terraform_data.network.output}-volume"
}

resource "terraform_data" "service" {
  input = terraform_data.volume.output

  provisioner "local-exec" {
    command = "echo 'the service does not come up' >&2; exit 1"
  }
}

resource "terraform_data" "route" {
  input = terraform_data.service.output
}

output "components" {
  value = [{ name = var.name, version = "1.0.0", replicas = 1, route = terraform_data.route.output }]
}
