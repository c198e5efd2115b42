import { run } from '#kit/lifecycle/lifecycle.ts';
import { createValidator } from './compose.ts';
import { validatorSettings } from './config.ts';

await run({ service: 'validator', schema: validatorSettings, create: createValidator });
