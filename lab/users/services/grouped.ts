/** No queue: concurrent requests share one multi-row insert, before the answer. */
import { groupedInserts } from '../grouped.ts'
import type { Serve } from '../service.ts'

export const serve: Serve = async ({ postgres }) => ({ accept: groupedInserts(postgres) })
