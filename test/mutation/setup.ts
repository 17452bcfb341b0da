// Tests must not reach a real service that the environment names.
for (const name of Object.keys(process.env)) if (name.startsWith('BROWSER_POOL_')) delete process.env[name];
