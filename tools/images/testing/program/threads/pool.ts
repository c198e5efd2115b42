import { createRequire } from 'node:module';

export function nameThread(): URL {
  return new URL('./thread.ts', import.meta.url);
}

export function loadNative(): unknown {
  return createRequire(import.meta.url)('sodium-native');
}
