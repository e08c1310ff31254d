/**
 * Holds the process until the promise is settled. The connections of an open store hold no process, so what is awaited on one needs a
 * timer: that of its deadline, or this.
 */
export async function held<T>(promise: Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, 60_000)
  try {
    return await promise
  } finally {
    clearInterval(timer)
  }
}
