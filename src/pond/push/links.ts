/** The jobs that a pushed one waits for: contract/graphs.md. */

import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { checkId, isId } from '../../values/jobs/ids.ts'
import type { NewJob, OnDead } from '../../values/jobs/records.ts'
import { needs } from '../../values/operations/capabilities.ts'
import type { Rules } from '../../values/options/options.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { kindOf } from '../../values/time/duration.ts'
import type { OnceOptions } from './once.ts'

export interface LinkOptions {
  /**
   * Ids of the jobs that this one waits for, its parents, in any queue of the store; 10,000 at most. It starts when the last of them is
   * done. Parents may have ended already. With one that is not known, the push rejects with `ParentUnknown`. With a `key` that another job
   * has, which does not wait for these, it rejects with `KeyHeld`.
   */
  after?: readonly string[] | undefined
  /**
   * When a parent dies, is cancelled or is removed: this job is cancelled as well (`cancel`, unless set), or starts all the same (`run`).
   */
  onDead?: OnDead | undefined
  /**
   * The id of a job that has not ended: this one is part of its work. Every job that still waits for that one waits for this one too. If it
   * has ended, the push rejects with `ParentUnknown`.
   */
  partOf?: string | undefined
}

export const MAX_PARENTS = DEFAULTS.bounds.parents.most
/** Bytes of an id in a call. */
const ID_BYTES = 36

export const LINK_RULES: Rules<LinkOptions> = {
  after: (value) => isIds(value) || refuseIds(value),
  onDead: (value) => value === 'cancel' || value === 'run' || "'cancel' or 'run'",
  partOf: (value) => checkId(value) !== '',
}

function isIds(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_PARENTS && value.every(isId)
}

/** @throws InvalidName: one of them is no id */
function refuseIds(value: unknown): string {
  if (!Array.isArray(value)) return `an array of ids, as in after: [id]; it is ${kindOf(value)}`
  if (value.length <= MAX_PARENTS) for (const each of value) checkId(each)
  return `an array of at most ${MAX_PARENTS} ids; for more, let some jobs wait for parts of them, and this one for those`
}

/** @throws InvalidOption, NotSupported */
export function checkLinks(given: LinkOptions & { once?: OnceOptions | undefined }, store: Store, where: string) {
  const { after, onDead, partOf, once } = given
  if (after === undefined && partOf === undefined) {
    if (onDead !== undefined)
      throw invalid(`${where}: onDead says what the end of a job of \`after\` means; give after`)
    return
  }
  const name = after === undefined ? 'partOf' : 'after'
  for (const other of ['replace', 'whenRunning'] as const) {
    if (once?.[other]) throw invalid(`${where}: give ${name} or once.${other}, not both`)
  }
  needs(store, 'graphs', name)
}

/** As the store takes them. */
export type Links = Pick<NewJob, 'after' | 'onDead' | 'partOf'>

export const NO_LINKS: Links = {}

export function linksFrom({ after, onDead, partOf }: LinkOptions): Links {
  // Nearly all pushes.
  if (after === undefined && partOf === undefined) return NO_LINKS
  return {
    ...(after !== undefined && after.length > 0 && { after: [...new Set(after.map((id) => id.toLowerCase()))] }),
    ...(onDead === 'run' && { onDead }),
    ...(partOf !== undefined && { partOf: partOf.toLowerCase() }),
  }
}

/** Roughly, in a call. */
export const linkBytes = ({ after }: NewJob): number => (after === undefined ? 0 : after.length * ID_BYTES)

/** Of the outcome `orphan`. */
export function parentUnknown(queue: string, parent: string | undefined): MillpondError {
  const message = `job ${parent} is not known to the store, or has ended and takes no more parts; nothing was stored`
  return new MillpondError('ParentUnknown', `push to ${queue}: ${message}`, { queue, ...(parent && { id: parent }) })
}

/** Of the outcome `held`. */
export function keyHeld(queue: string, id: string): MillpondError {
  const message = `job ${id} has the key, and does not wait for the jobs of \`after\`; nothing was stored`
  return new MillpondError('KeyHeld', `push to ${queue}: ${message}`, { queue, id })
}

const invalid = (message: string) => new MillpondError('InvalidOption', message)
