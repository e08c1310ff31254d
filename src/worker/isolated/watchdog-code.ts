/** The code of the watchdog, to start it with. The build replaces this module by a data: URL that holds it whole (`build/main.ts`). */
export const WATCHDOG = new URL('./watchdog.ts', import.meta.url)
