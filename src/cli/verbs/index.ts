/** The verbs, in the order of the help. A verb is loaded when it is called: `plan` needs no HTTP server. */
import type { Verb } from '../verb.ts'

export const VERBS: Readonly<Record<string, () => Promise<{ verb: Verb }>>> = {
  serve: () => import('./serve.ts'),
  move: () => import('./move.ts'),
  plan: () => import('./plan.ts'),
}
