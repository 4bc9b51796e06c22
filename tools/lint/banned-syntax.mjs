const unsafeSql = {
  selector:
    "MemberExpression[property.name=/^(\\$queryRawUnsafe|\\$executeRawUnsafe)$/], MemberExpression[object.name='Prisma'][property.name='raw']",
  message: "SQL is parameterised: use `$queryRaw` or `$executeRaw` with a template.",
};
const defaultExport = {
  selector: "ExportDefaultDeclaration",
  message: "A thing has one name: export it by that name.",
};
const readClock = {
  selector:
    "CallExpression[callee.object.name='Date'][callee.property.name='now'], NewExpression[callee.name='Date'][arguments.length=0]",
  message: "Time is an argument: take a Clock, or the instant itself.",
};
const randomness = {
  selector: "CallExpression[callee.object.name='Math'][callee.property.name='random']",
  message: "Chance is an argument: take a NewId or a random source.",
};

const assertion = {
  selector: "TSAsExpression:not([typeAnnotation.typeName.name='const']), TSTypeAssertion",
  message: "An assertion can be wrong: narrow the value, or give its source the right type.",
};
/** XState takes the types of a machine as `{} as T`, which asserts nothing about a value. */
const assertionOfValue = {
  ...assertion,
  selector: "TSAsExpression:not([typeAnnotation.typeName.name='const']):not([expression.properties.length=0])",
};

/** Files at the edge of a package whose own types are wrong; each says at its assertion why it holds. */
const EDGES = ["libs/eventing/src/queues/postgres-backend.ts"];
const COMPOSITION = ["libs/service-kit/src/{clock,ids}.ts", "services/*/src/main.ts"];

const always = [unsafeSql, defaultExport];
const pure = [readClock, randomness];

/** Syntax that has a better way, by folder; a later entry replaces an earlier one for its files. */
export const bannedSyntax = [
  { files: ["**/*.ts"], rules: banned(...always, assertion) },
  { files: ["{libs,services}/*/src/**/*.ts"], rules: banned(...always, ...pure, assertion) },
  { files: ["libs/state-machines/src/**/*.ts"], rules: banned(...always, ...pure, assertionOfValue) },
  { files: EDGES, rules: banned(...always, ...pure) },
  { files: COMPOSITION, rules: banned(...always, assertion) },
  { files: ["**/*.test.ts"], rules: banned(...always, assertion) },
];

function banned(...syntax) {
  return { "no-restricted-syntax": ["error", ...syntax] };
}
