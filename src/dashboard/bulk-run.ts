/** What the dashboard asks of the bulk changes of a queue. */
import type { BulkPreview, BulkReport } from '../pond/bulk.ts'
import { BULK_STATES, type BulkOptions, type DryRunOptions } from '../pond/bulk-options.ts'
import type { Queue } from '../pond/queue.ts'
import { Refusal } from '../web/problem.ts'
import type { BulkBody } from './views.ts'

export interface BulkChange {
  preview(options: DryRunOptions): Promise<BulkPreview>
  run(options: BulkOptions): Promise<BulkReport>
}

/** @throws Refusal: 400, the action does not take jobs of this state */
export function bulkChange(queue: Queue, { action, search }: BulkBody): BulkChange {
  const { state, ...filter } = search
  if (action === 'requeue' && (state === 'dead' || state === 'cancelled')) {
    const own = { ...filter, state }
    return { preview: (options) => queue.requeueAll(own, options), run: (options) => queue.requeueAll(own, options) }
  }
  const cancelled = action === 'cancel' ? BULK_STATES.cancel.find((one) => one === state) : undefined
  if (cancelled !== undefined) {
    const own = { ...filter, state: cancelled }
    return { preview: (options) => queue.cancelAll(own, options), run: (options) => queue.cancelAll(own, options) }
  }
  if (action === 'promote' && state === 'scheduled') {
    return {
      preview: (options) => queue.promoteAll(filter, options),
      run: (options) => queue.promoteAll(filter, options),
    }
  }
  if (action === 'remove') {
    return {
      preview: (options) => queue.removeAll(search, options),
      run: (options) => queue.removeAll(search, options),
    }
  }
  throw new Refusal(400, `${action} does not take jobs that are ${state}.`, { code: 'InvalidOption' })
}
