/**
 * The code of the thread, to start it with. The build replaces this module by a data: URL that holds the thread whole
 * (`build/main.ts`).
 */
export const THREAD = new URL('./thread.ts', import.meta.url)
