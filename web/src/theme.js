// Light or dark: as the system has it, or as chosen and kept.

const THEME_KEY = 'whit-theme';
/** Choices, each with the next one. */
const NEXT = /** @type {const} */ ({ auto: 'light', light: 'dark', dark: 'auto' });

/** @typedef {keyof typeof NEXT} ThemeChoice */

/** @returns {ThemeChoice} */
function storedTheme() {
  try {
    const stored = localStorage.getItem(THEME_KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'auto';
  } catch {
    // Storage may be closed to local files; the theme then follows the system.
    return 'auto';
  }
}

export class Theme {
  /** `button` shows the choice and makes the next one; `changed` is called after each change.
   *  @param {HTMLElement} button
   *  @param {() => void} changed */
  constructor(button, changed) {
    this.button = button;
    this.changed = changed;
    this.darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
    this.choice = storedTheme();
    this.name = this.#nameOf(this.choice);
    this.#show();
    this.darkQuery.addEventListener('change', () => {
      this.#show();
      this.changed();
    });
    button.addEventListener('click', () => this.#next());
  }

  /** @param {ThemeChoice} choice */
  #nameOf(choice) {
    const system = this.darkQuery.matches ? 'dark' : 'light';
    return choice === 'auto' ? system : choice;
  }

  #show() {
    this.name = this.#nameOf(this.choice);
    document.documentElement.dataset.theme = this.name;
    this.button.dataset.choice = this.choice;
    this.button.title = `Theme: ${this.choice}. Click for ${NEXT[this.choice]}.`;
  }

  #next() {
    this.choice = NEXT[this.choice];
    this.#show();
    try {
      localStorage.setItem(THEME_KEY, this.choice);
    } catch {
      this.button.title += ' The browser does not keep it for this file.';
    }
    this.changed();
  }
}
