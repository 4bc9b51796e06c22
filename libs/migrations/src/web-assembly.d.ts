// The little of WebAssembly that is used here: Node's types leave it to the browser's library, which would also
// let `window` and `document` compile.
declare namespace WebAssembly {
  const Module: new (bytes: Uint8Array) => object;
  const Instance: new (
    module: object,
    imports: Readonly<Record<string, object>>,
  ) => { readonly exports: Readonly<Record<string, unknown>> };
}
