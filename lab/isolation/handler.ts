/** The handler of an isolated worker: does the harm that its job names, or nothing. */
import type { Job } from '../../src/index.ts'
import { HARMS, isHarm } from './harm.ts'

export default ({ data }: Job): unknown => (isHarm(data) ? HARMS[data]() : undefined)
