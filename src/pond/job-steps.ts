/** The steps of a job as people see them, and what they can do about them: contract/steps.md. */

import type { Store } from '../store.ts'
import { encode } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId, newId } from '../values/jobs/ids.ts'
import type { Entry, SignalItem } from '../values/jobs/records.ts'
import { type StepInfo, stepInfos } from '../values/jobs/step-info.ts'
import { checkStepName, isSignal, signalEntry, stepKey } from '../values/jobs/step-names.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkOptions } from '../values/options/options.ts'
import { checkKey, checkQueueName } from '../values/settings/names.ts'
import { readJournal } from '../worker/steps/read-journal.ts'

/** Whom a signal is for: the id of a job, or the queue and the key of a live one. */
export type SignalTarget = string | { queue: string; key: string }

/** @throws NotSupported, `Store…` */
async function entriesOf(store: Store, id: string): Promise<Entry[]> {
  needs(store, 'steps', 'steps')
  return readJournal(store, id)
}

export const stepsOf = async (store: Store, id: string): Promise<StepInfo[]> => stepInfos(await entriesOf(store, id))

/**
 * @returns the id of the job
 * @throws InvalidName, InvalidOption, PayloadNotEncodable, PayloadTooLarge, JobUnknown, JobEnded, StepsTooLarge, NotSupported, `Store…`
 */
export async function signal(
  store: Store,
  target: SignalTarget,
  name: string,
  data: unknown,
  maxPayload: number,
): Promise<string> {
  needs(store, 'steps', 'signals')
  const body = data === undefined ? null : encode(data, 'the data of a signal', maxPayload)
  const meta = JSON.stringify({ at: Date.now() })
  const item: SignalItem = { name: signalEntry(checkStepName(name), newId()), meta, body, ...whom(target) }
  const [outcome] = await store.operations.signal({ items: [item] })
  const { status = 'none', id = null } = outcome ?? {}
  if (status === 'ok' && id !== null) return id
  const job = id === null ? `a live job of queue ${'queue' in item ? item.queue : ''} with this key` : `job ${id}`
  const details = id === null ? {} : { id }
  if (status === 'ended') throw new MillpondError('JobEnded', `${job} has ended, so it takes no signal`, details)
  if (status === 'full') {
    throw new MillpondError('StepsTooLarge', `${job} has too many entries for another signal`, details)
  }
  throw new MillpondError('JobUnknown', `the store does not know ${job}; the signal was not kept`, details)
}

function whom(target: SignalTarget): { id: string } | { queue: string; key: string } {
  if (typeof target === 'string') return { id: checkId(target) }
  const rules = {
    queue: (value: unknown) => checkQueueName(value) !== '',
    key: (value: unknown) => checkKey(value, 'key') !== '',
  }
  return checkOptions(target, rules, 'the target of a signal', ['queue', 'key'])
}

/** The number of the first entry of a step. @throws InvalidOption: the job has no such step */
export async function stepNumber(store: Store, id: string, key: string): Promise<number> {
  const first = (await entriesOf(store, id)).find(({ name }) => !isSignal(name) && stepKey(name) === key)
  if (first !== undefined) return first.n
  const message = `job ${id} has kept no step of this name; pond.job(id) lists its steps`
  throw new MillpondError('InvalidOption', `requeue from a step: ${message}`, { id })
}
