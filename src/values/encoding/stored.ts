/**
 * What a value is once it was stored and read again. JSON has no Date, so a Date is its ISO text; a class with `toJSON`
 * is what that returns. Bytes stay bytes: a Buffer comes back as a `Uint8Array`.
 */
export type Stored<Value> = unknown extends Value
  ? Value
  : Value extends Uint8Array
    ? Uint8Array
    : Value extends { toJSON(...args: never): infer Text }
      ? Stored<Text>
      : Value extends string | number | boolean | bigint | null | undefined
        ? Value
        : Value extends object
          ? { [Name in keyof Value]: Stored<Value[Name]> }
          : Value
