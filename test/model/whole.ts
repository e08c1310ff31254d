/** A push of all or none: tried on a copy of the model first. */
import type { NewJob, PushOutcome } from '../../src/values/jobs/records.ts'
import { Model } from './model.ts'

export function pushWhole(model: Model, jobs: readonly NewJob[]): PushOutcome[] {
  const outcomes = copyOf(model).push(jobs)
  if (!outcomes.some(isRefused)) return model.push(jobs)
  for (const { queue } of jobs) model.queue(queue)
  return outcomes.map((outcome, at): PushOutcome => {
    const { status, id } = outcome
    const wasThere = model.job(id) ?? model.keys.remembered.find((one) => one.id === id)
    const isTold = isRefused(outcome) || (status === 'existing' && wasThere !== undefined)
    return isTold ? outcome : { status: 'withheld', id: jobs[at]?.id ?? '' }
  })
}

const isRefused = ({ status }: PushOutcome) => status === 'full' || status === 'orphan' || status === 'held'

function copyOf(model: Model): Model {
  const copy = new Model()
  const copies = new Map(model.jobs.map((job) => [job, { ...job }]))
  copy.now = model.now
  copy.jobs = [...copies.values()]
  copy.graph.links = model.graph.links.map((link) => ({ ...link, child: copies.get(link.child) ?? link.child }))
  copy.keys.remembered = [...model.keys.remembered]
  for (const [name, queue] of model.queues) copy.queues.set(name, structuredClone(queue))
  return copy
}
