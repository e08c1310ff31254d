/** This store keeps no schedules: its capability says so. */
import { MillpondError } from '../../../values/errors.ts'
import type { StoreContext } from '../context.ts'

async function lacking({ calls }: StoreContext): Promise<never> {
  calls.assertOpen()
  throw new MillpondError('NotSupported', 'schedules need a store with the capability schedules, which redis lacks')
}

export const declare = lacking
export const schedules = lacking
export const pauseSchedule = lacking
export const removeSchedule = lacking
export const fire = lacking
