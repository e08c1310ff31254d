/**
 * How much a test does: few in `npm test`, many in `npm run test:deep`, which sets MILLPOND_TEST_DEEP. That is a factor: with
 * MILLPOND_TEST_DEEP=10, a deep test does ten times as much.
 */
const factor = process.env.MILLPOND_TEST_DEEP

export const isDeep = factor !== undefined

/** @returns `many`, times the factor, in a deep run; `few` else */
export const depth = (few: number, many: number): number => (isDeep ? many * Number(factor) : few)

/** @returns all in a deep run, else so many, spread over the list */
export const sample = <T>(list: readonly T[], few: number): T[] =>
  list.filter(
    (_, at) => isDeep || at === 0 || Math.floor((at * few) / list.length) > Math.floor(((at - 1) * few) / list.length),
  )
