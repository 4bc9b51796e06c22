import type { Contract } from "../gen/contract.ts";
import { isRequired, typeName } from "../gen/field-types.ts";
import type { CatalogueSubscription } from "./catalogue.ts";
import type { DeclaredCommand } from "./commands.ts";
import type { DeclaredEvent } from "./events.ts";

/** What `proto/` declares, in the catalogue's words. */
export interface Declared {
  events: DeclaredEvent[];
  commands: DeclaredCommand[];
  subscriptions: CatalogueSubscription[];
}

export function declaredBy({ planes }: Contract): Declared {
  return {
    events: planes
      .flatMap(({ events }) => events)
      .map(({ message, ...event }) => ({
        ...event,
        consumers: [...event.consumers],
        fields: message.fields.map((field) => ({
          name: field.jsonName,
          type: typeName(field),
          required: isRequired(field),
        })),
      })),
    commands: planes
      .flatMap(({ commands }) => commands)
      .map(({ protoName, ...command }) => ({
        ...command,
        resultEvents: [...command.resultEvents],
        isMethod: protoName.includes("/"),
      })),
    subscriptions: planes.flatMap(({ subscriptions }) => subscriptions),
  };
}
