/** Kinds of providers that administrators choose from. */
export const PRESETS = ['GenericOidc', 'MicrosoftEntra', 'Google', 'Okta', 'Apple', 'AmazonCognito'] as const;
export type Preset = (typeof PRESETS)[number];

export function isPreset(text: string): text is Preset {
  return PRESETS.some((preset) => preset === text);
}

/** Whether clients may ask for a token of their own there, which tests the secret (RFC 6749, 4.4). */
export function hasClientCredentials(preset: Preset): boolean {
  return preset !== 'Google' && preset !== 'Apple';
}
