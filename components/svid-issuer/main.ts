import { run } from '#kit/lifecycle/lifecycle.ts';
import { createSvidIssuer } from './compose.ts';
import { svidIssuerSettings } from './config.ts';

await run({ service: 'svid-issuer', schema: svidIssuerSettings, create: createSvidIssuer });
