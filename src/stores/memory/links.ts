/** Which jobs a job waits or waited for, and which wait or waited for it. A link is gone as soon as one of its jobs is. */
import type { Relatives } from '../../values/operations/requests.ts'
import { type Job, Links } from './job.ts'

const linksOf = (job: Job): Links => {
  job.links ??= new Links('cancel')
  return job.links
}

export function link(parent: Job, child: Job): void {
  linksOf(parent).children.add(child)
  linksOf(child).parents.set(parent.id, parent)
}

/** The job leaves the store. Its own sets stay as they are: if it has just ended, its children are still to be told. */
export function unlink(job: Job): void {
  if (job.links === null) return
  for (const parent of job.links.parents.values()) parent.links?.children.delete(job)
  for (const child of job.links.children) child.links?.parents.delete(job.id)
}

export function relativesOf(job: Job, limit: number): Relatives {
  const { id: _, queue, state, links } = job
  const parents = [...new Set([...(links?.parents.keys() ?? []), ...(links?.open ?? [])])].sort()
  const children = [...(links?.children ?? [])].map(({ id }) => id).sort()
  return {
    ...{ queue, state, onDead: links?.onDead ?? 'cancel' },
    ...{ parents: parents.slice(0, limit), children: children.slice(0, limit) },
    more: parents.length > limit || children.length > limit,
  }
}
