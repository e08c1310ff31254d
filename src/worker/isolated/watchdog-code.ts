/**
 * The code of the watchdog, to start it with. The build replaces this module by one that holds the code whole, as a data: URL
 * (`build/main.ts`).
 */
export const watchdogCode = (): URL => new URL('./watchdog.ts', import.meta.url)
