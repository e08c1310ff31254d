/** The ceiling: it answers, and keeps nothing. */
import { newId } from '../../../src/values/jobs/ids.ts'
import type { Serve } from '../service.ts'

export const serve: Serve = async () => ({ accept: async () => newId() })
