import { run } from '#kit/lifecycle/lifecycle.ts';
import { createRegister } from './compose.ts';
import { registerSettings } from './config.ts';

await run({ service: 'service-register', schema: registerSettings, create: createRegister });
