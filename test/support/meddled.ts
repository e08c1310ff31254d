import type { Capabilities, Input, OperationName, Output, Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'

type Operation<Name extends OperationName> = (input: Input<Name>) => Promise<Output<Name>>

/** What is done instead of some operations; `next` is the store's own. It may be changed at any time. */
export type Meddling = {
  [Name in OperationName]?: (input: Input<Name>, next: Operation<Name>) => Promise<Output<Name>>
}

/** Any store, whose operations a test counts, delays, changes, or makes fail. @param capabilities those that it tells of otherwise */
export function meddled(store: Store, meddling: Meddling, capabilities: Partial<Capabilities> = {}): Store {
  const wrapped = around(store, (name, input, next) => {
    const instead: Meddling[typeof name] = meddling[name]
    return instead === undefined ? next(input) : instead(input, next)
  })
  return { ...wrapped, capabilities: { ...store.capabilities, ...capabilities } }
}
