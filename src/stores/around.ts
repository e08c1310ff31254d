import type { Input, OperationName, Operations, Output, Store } from '../store.ts'

/** What is done around an operation: `next` does it, with this input or another one. */
export type Around = <Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  next: Operation<Name>,
) => Promise<Output<Name>>

type Operation<Name extends OperationName> = (input: Input<Name>) => Promise<Output<Name>>

/** The same store with something done around each of its operations. What it does beside them, such as transactions, stays as it is. */
export function around(store: Store, wrap: Around): Store {
  const wrapped = <Name extends OperationName>(name: Name): [Name, Operation<Name>] => {
    // Of a table of functions by name, TypeScript does not see that each takes the input of its own name.
    const next = store.operations[name] as unknown as Operation<Name>
    const operation: Operation<Name> = (input) => wrap(name, input, next)
    return [name, operation]
  }
  const names = Object.keys(store.operations) as OperationName[]
  return { ...store, operations: Object.fromEntries(names.map(wrapped)) as unknown as Operations }
}
