import { getOption } from "@bufbuild/protobuf";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { EventLogService } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/event_log_service_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { scope } from "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";

const services = [IaCProvisioningService, ExecutionCapacityService, RuntimeEnvironmentService, EventLogService];

/** Every scope that a method of the three services asks for, each once. */
export const allScopes: readonly string[] = [
  ...new Set(services.flatMap(({ methods }) => methods.map((method) => getOption(method, scope)))),
];
