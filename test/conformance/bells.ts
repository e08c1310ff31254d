/** Waits for bells. */
import type { Bell, Store } from '../../src/store.ts'
import { until } from '../support/until.ts'

/** Does something and waits for a bell of that kind for the queue `q`. */
export async function hear(
  store: Store,
  kind: Bell['kind'],
  doing: () => Promise<unknown>,
  id?: string,
): Promise<void> {
  const heard: Bell[] = []
  const stop = store.listen((bell) => heard.push(bell))
  try {
    await doing()
    await until(
      () =>
        heard.some((bell) => {
          if (bell.kind !== kind || bell.queue !== 'q') return false
          return id === undefined || !('ids' in bell) || bell.ids === undefined || bell.ids.includes(id)
        }),
      `a bell for ${kind}`,
    )
  } finally {
    stop()
  }
}
