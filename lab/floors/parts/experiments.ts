/** The experiments, short, with the variants that have bars. */
import { cache as e3 } from '../../cache/experiment.ts'
import { coalesce as e4 } from '../../coalesce/experiment.ts'
import { NAMES } from '../../coalesce/variants.ts'
import { users as e1 } from '../../users/experiment.ts'
import { barsOf, type Part, type Size } from '../part.ts'

const timing = ({ runs, quick }: Size) => {
  const [seconds, warming] = quick ? [1, 1] : [2, 2]
  return { runs, quick, seconds, warming, json: undefined }
}

export const users: Part = (size, stage) => {
  const only = ['nothing', 'grouped', 'redis', 'postgres'] as const
  const options = { ...timing(size), only, connections: [64], patience: 10, fsync: false }
  return barsOf('E1', e1.measure(options, stage))
}

/** Ours, MessagePack, and of the other plain ones the fastest. */
export const cache: Part = (size, stage) => {
  const only = ['string', 'msgpack', 'millpond'] as const
  const options = { ...timing(size), only, items: [1000], connections: 10, full: false, large: false }
  return barsOf('E3', e3.measure(options, stage))
}

/** A call for each request has no bar. */
export const coalesce: Part = (size, stage) => {
  const only = NAMES.filter((name) => name !== 'plain')
  const options = { ...timing(size), only, warming: 1, connections: 1000 }
  return barsOf('E4', e4.measure(options, stage))
}
