// Which part may import which: services → eventing → {service-kit, state-machines} → contracts. What is not allowed
// is refused where it is imported, with the reason.

const PARTS = ["contracts", "state-machines", "service-kit", "eventing", "migrations", "local-servers"];
const SERVICES = ["iac-provisioning", "execution-capacity", "runtime-environment"];
const HOST = "runtime-cloud-host";

/** The parts of the repository that each one may import; itself it reaches by relative paths. */
const ALLOWED = {
  "libs/contracts": [],
  "libs/migrations": [],
  "libs/local-servers": [],
  "libs/state-machines": ["contracts"],
  "libs/service-kit": ["contracts"],
  "libs/eventing": ["contracts", "state-machines", "service-kit"],
  ...Object.fromEntries(
    SERVICES.map((service) => [
      `services/${service}`,
      ["contracts", "state-machines", "service-kit", "eventing", "migrations"],
    ]),
  ),
  [`services/${HOST}`]: [...PARTS, ...SERVICES],
};

/** Packages that one folder knows, so that the others don't. */
const OWNED = [
  {
    packages: "bullmq|ioredis",
    owners: ["libs/eventing"],
    message: "Only eventing knows the queue: add what is needed there.",
  },
  {
    packages: "@bull-board/.*|express",
    owners: ["libs/eventing"],
    message: "Dashboards are eventing's: mount its dashboard.",
  },
  {
    packages: "node:http2|@connectrpc/connect-node|@grpc/grpc-js",
    owners: ["libs/service-kit"],
    message: "Only service-kit knows the transport: add what is needed there.",
  },
  {
    packages: "node:http|node:https",
    // Terraform and OpenTofu keep their state by an HTTP protocol of their own; observers ask what speaks theirs.
    owners: ["libs/service-kit", "services/iac-provisioning", "services/runtime-environment"],
    message: "Only service-kit knows HTTP: add what is needed there.",
  },
  {
    packages: "@prisma/.*|pg|@connectrpc/.*",
    owners: Object.keys(ALLOWED).filter((folder) => folder !== "libs/state-machines"),
    message: "State machines are pure: no database, no wire.",
  },
];

export const directions = Object.entries(ALLOWED).map(([folder, allowed]) => ({
  files: [`${folder}/src/**/*.ts`],
  ignores: ["**/*.test.ts"],
  rules: {
    "no-restricted-imports": [
      "error",
      { patterns: [...forbiddenParts(folder, allowed), ...forbiddenPackages(folder)] },
    ],
  },
}));

function forbiddenParts(folder, allowed) {
  const forbidden = [...PARTS, ...SERVICES, HOST].filter((part) => !allowed.includes(part)).join("|");
  return [
    {
      regex: `^@runtime-cloud/(${forbidden})(/|$)`,
      message: `${folder} may import ${allowed.join(", ") || "no other part"}: see tools/lint/directions.mjs.`,
    },
    { regex: "^(\\.\\./)+(libs|services)/", message: "Import another part by its package's name." },
  ];
}

function forbiddenPackages(folder) {
  return OWNED.filter(({ owners }) => !owners.includes(folder)).map(({ packages, message }) => ({
    regex: `^(${packages})(/|$)`,
    message,
  }));
}
