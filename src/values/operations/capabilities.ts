import type { Capabilities, Store } from '../../store.ts'
import { MillpondError } from '../errors/errors.ts'

type Has = Pick<Store, 'name' | 'capabilities'>

/** @param what needs it, as callers know it @throws NotSupported */
export function needs(store: Has, capability: keyof Capabilities, what: string): void {
  if (!store.capabilities[capability]) throw lacking(store, capability, what)
}

export function lacking(store: Pick<Store, 'name'>, capability: keyof Capabilities, what: string): MillpondError {
  const message = `${what} needs a store with the capability ${capability}, which ${store.name} lacks`
  return new MillpondError('NotSupported', message)
}
