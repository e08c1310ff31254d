/**
 * Keeps the process alive until the promise is settled. The connections of an open store keep no process alive, so what is awaited on one
 * needs a timer: that of its deadline, or this.
 */
export async function keepProcessAlive<T>(promise: Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, 60_000)
  try {
    return await promise
  } finally {
    clearInterval(timer)
  }
}
