// Light or dark: as the system has it, or as chosen and kept.

const THEME_KEY = 'whit-theme';
const NEXT = { auto: 'light', light: 'dark', dark: 'auto' };

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    // Storage may be closed to local files; the theme then follows the system.
    return null;
  }
}

export class Theme {
  /** `button` shows the choice and goes to the next; `changed` is called after each change. */
  constructor(button, changed) {
    this.button = button;
    this.changed = changed;
    this.darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
    this.#apply(storedTheme());
    this.darkQuery.addEventListener('change', () => {
      this.#apply(this.choice);
      this.changed();
    });
    button.addEventListener('click', () => this.#next());
  }

  #apply(choice) {
    this.choice = Object.hasOwn(NEXT, choice ?? '') ? choice : 'auto';
    const system = this.darkQuery.matches ? 'dark' : 'light';
    this.name = this.choice === 'auto' ? system : this.choice;
    document.documentElement.dataset.theme = this.name;
    this.button.dataset.choice = this.choice;
    this.button.title = `Theme: ${this.choice}. Click for ${NEXT[this.choice]}.`;
  }

  #next() {
    this.#apply(NEXT[this.choice]);
    try {
      localStorage.setItem(THEME_KEY, this.choice);
    } catch {
      this.button.title += ' The browser does not keep it for this file.';
    }
    this.changed();
  }
}
