/** The verbs, in the order of the help. A verb is loaded when it is called: `plan` needs no HTTP server. */
import type { Verb } from '../verb.ts'

export const VERBS: Readonly<Record<string, () => Promise<{ verb: Verb }>>> = {
  stats: () => import('./stats.ts'),
  top: () => import('./top.ts'),
  explain: () => import('./explain.ts'),
  jobs: () => import('./jobs.ts'),
  job: () => import('./job.ts'),
  workers: () => import('./workers.ts'),
  limits: () => import('./limits.ts'),
  plan: () => import('./plan.ts'),
  doctor: () => import('./doctor.ts'),
  push: () => import('./push.ts'),
  requeue: () => import('./requeue.ts'),
  promote: () => import('./promote.ts'),
  update: () => import('./update.ts'),
  cancel: () => import('./cancel.ts'),
  remove: () => import('./remove.ts'),
  pause: () => import('./pause.ts'),
  resume: () => import('./resume.ts'),
  serve: () => import('./serve.ts'),
  mcp: () => import('./mcp.ts'),
  move: () => import('./move.ts'),
  migrate: () => import('./migrate.ts'),
  init: () => import('./init.ts'),
  demo: () => import('./demo.ts'),
  completion: () => import('./completion.ts'),
}
