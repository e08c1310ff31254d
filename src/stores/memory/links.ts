/** Which jobs a job waits or waited for, and which wait or waited for it. */
import type { Relatives } from '../../values/operations/requests.ts'
import { isFinal, type Job, Links } from './job.ts'

const linksOf = (job: Job): Links => {
  job.links ??= new Links('cancel')
  return job.links
}

export function link(parent: Job, child: Job): void {
  linksOf(parent).children.add(child)
  const { parents, gone } = linksOf(child)
  parents.set(parent.id, parent)
  gone.delete(parent.id)
}

/** It may ask for what its parents came to. */
export function hasLiveChild({ links }: Job): boolean {
  for (const child of links?.children ?? []) if (!isFinal(child.state)) return true
  return false
}

/** The job leaves the store. Its own sets stay as they are: if it has just ended, its children are still to be told. */
export function unlink(job: Job): void {
  if (job.links === null) return
  for (const parent of job.links.parents.values()) parent.links?.children.delete(job)
  for (const { links, state } of job.links.children) {
    links?.parents.delete(job.id)
    if (!isFinal(state)) links?.gone.add(job.id)
  }
}

export function relativesOf(job: Job, limit: number): Relatives {
  const { id: _, queue, state, links } = job
  const { parents, gone, open, children } = links ?? new Links('cancel')
  const above = [...new Set<string>([...parents.keys(), ...gone, ...open])].sort()
  const below = [...children].map(({ id }) => id).sort()
  const shown = above.slice(0, limit)
  const isGone = (id: string) => !parents.has(id) && !open.has(id)
  return {
    ...{ queue, state, onDead: links?.onDead ?? 'cancel' },
    ...{ parents: shown.filter((id) => !isGone(id)), gone: shown.filter(isGone), children: below.slice(0, limit) },
    more: above.length > limit || below.length > limit,
  }
}
